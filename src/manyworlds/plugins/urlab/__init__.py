"""URLab's protocols, by which its programs and those written for it use a lab."""
