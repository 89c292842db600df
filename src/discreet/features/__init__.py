"""How smooth a function is, as a finite feature map with a bound on its error."""
