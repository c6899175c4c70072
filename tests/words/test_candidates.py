from fedhh.words.alphabet import Alphabet
from fedhh.words.candidates import Candidates


def test_the_order_says_nothing_of_who_holds_what():
    assert Candidates(["lol", "brb", "lol"]) == Candidates(("brb", "lol"))
    assert Candidates(["lol", "brb"]).words == ("brb", "lol")


def test_words_that_the_alphabet_cannot_spell_are_left_out():
    codes = Candidates(["ba", "b", "", "cab", "aaaac"]).spelled(Alphabet(symbols="ab"))
    assert codes.tolist() == [[2, 0, 0], [2, 1, 0]]
    assert Candidates(["c"]).spelled(Alphabet(symbols="ab")).shape == (0, 1)


def test_a_long_list_is_distinguished_by_a_short_text():
    one, other = Candidates(["a", "b"]), Candidates(["a", "c"])
    assert repr(one) != repr(other)
    assert repr(one).startswith("Candidates(2 words, ")
