"""RTP without sockets: when each packet is due, and what an SDP offer must hold. Pure."""
