"""Protocol adapters: a client's messages to session commands, session events to frames. Pure."""
