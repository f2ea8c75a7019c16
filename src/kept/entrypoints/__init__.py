"""Entry points for people and programs. They translate arguments, results and errors, and decide nothing."""
