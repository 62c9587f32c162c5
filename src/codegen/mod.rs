//! OpenCL C from a lowered program.
