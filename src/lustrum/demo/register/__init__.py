"""The demo business register: what it holds, and the businesses in it."""
