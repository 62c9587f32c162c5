//! Runs a program on every engine and compares.
