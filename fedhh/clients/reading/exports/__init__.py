"""What people wrote, from archives of other programs: git clones, mailing lists, chat exports."""
