"""How clients answer each kind of question."""
