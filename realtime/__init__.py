"""Sessions, text front end, encoders, protocols and transports."""
