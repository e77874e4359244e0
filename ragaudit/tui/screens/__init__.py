"""The screens, one file each, and their dialogs."""
