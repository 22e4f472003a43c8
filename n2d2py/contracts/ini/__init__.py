"""Contract of INI sections: how they become layers."""
