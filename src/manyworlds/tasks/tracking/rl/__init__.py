"""Learning to track."""
