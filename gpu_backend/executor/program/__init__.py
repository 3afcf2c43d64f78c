"""The stream as a program: its ops across the ends of batches, what is known of each, running, failing, optimising."""
