"""What lives in the user's process: answering the compiler, installing its results, and running on when it fails."""
