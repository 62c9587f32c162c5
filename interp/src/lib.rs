//! tilewright-interp
