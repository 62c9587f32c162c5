//! tilewright-ir
