//! The TE dialect: evaluates the syntax tree that `script` reads, keeps the schedule, lowers to a program.
