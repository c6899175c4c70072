"""How clients answer each kind of query."""
