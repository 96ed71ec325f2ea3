"""`inspect`: what files hold."""
