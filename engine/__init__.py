"""The speech engine: words in, PCM out. Knows nothing of sockets, sessions or wire formats."""
