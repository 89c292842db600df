"""What is agreed before a study, and what leaves the trusted side during it."""
