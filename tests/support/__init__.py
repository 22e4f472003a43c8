"""What tests of several files share: networks, cases, builds, checks."""
