"""The sub-commands of ``workbench``, one file each."""
