"""The web page: HTML made on the server from the messages of the wire, useful without a script."""
