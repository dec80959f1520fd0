"""What the documentation site shows beside its pages: names, commands, and recorded runs for its playground."""
