//! tilewright-script
