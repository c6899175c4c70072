"""Words as integers: alphabets, tries, lexicons, fragments."""
