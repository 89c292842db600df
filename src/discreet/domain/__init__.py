"""Where actions live: named coordinates, scaled to the unit cube and back."""
