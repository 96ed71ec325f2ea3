"""`verify`: forms of one model, by their outputs, operator by operator, and with what a board gave."""
