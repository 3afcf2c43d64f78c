"""The host mirror: what the notebook knows of small arrays, so that reading them costs no trip."""
