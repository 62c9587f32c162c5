//! What OpenCL drivers read from their environment, for processes that run kernels by the thousand.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// Where Oclgrind's package keeps its driver, which it registers with no loader.
const OCLGRIND: [&str; 3] = [
    "/usr/lib/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
    "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so",
];

/// Where loaders look for drivers.
const VENDORS: &str = "/etc/OpenCL/vendors";

/// A folder for what the drivers of one process write; gone when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// A folder of its own among the temporary files.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tilewright-drivers-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// What to start a process with so that its kernels are compiled each once and kept nowhere, Oclgrind is there if it is
    /// installed, looks for races, and reports to a file of this process alone, where the oracle `device` looks.
    ///
    /// What is already set in the environment of this process stays as it is.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn environment(&self) -> io::Result<Vec<(&'static str, OsString)>> {
        let mut variables = vec![
            ("POCL_KERNEL_CACHE", "0".into()),
            ("POCL_CACHE_DIR", self.folder.clone().into()),
            ("OCLGRIND_LOG", self.folder.join("oclgrind.log").into()),
            ("OCLGRIND_DATA_RACES", "1".into()),
        ];
        if let Some(vendors) = self.vendors(Path::new(VENDORS), &OCLGRIND)? {
            variables.push(("OCL_ICD_VENDORS", vendors));
        }
        variables.retain(|(name, _)| env::var_os(name).is_none());
        Ok(variables)
    }

    /// A folder of all drivers of the system and Oclgrind; none if it is not installed.
    fn vendors(&self, system: &Path, oclgrind: &[&str]) -> io::Result<Option<OsString>> {
        let Some(library) = oclgrind.iter().find(|library| Path::new(library).exists()) else { return Ok(None) };
        let folder = self.folder.join("vendors");
        fs::create_dir_all(&folder)?;
        for entry in fs::read_dir(system).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|end| end == "icd") {
                fs::copy(entry.path(), folder.join(entry.file_name()))?;
            }
        }
        fs::write(folder.join("oclgrind.icd"), format!("{library}\n"))?;
        // The slash makes ocl-icd take it for a folder.
        Ok(Some(folder.join("").into()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that stays behind among the temporary files harms nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oclgrind_is_added_to_the_drivers_of_the_system_and_nothing_is_left_behind() {
        let scratch = Scratch::new().unwrap();
        let system = scratch.folder.join("system");
        fs::create_dir_all(&system).unwrap();
        fs::write(system.join("one.icd"), "libone.so\n").unwrap();
        let library = scratch.folder.join("lib.so");
        assert_eq!(scratch.vendors(&system, &[library.to_str().unwrap()]).unwrap(), None);
        fs::write(&library, "").unwrap();
        let vendors = PathBuf::from(scratch.vendors(&system, &[library.to_str().unwrap()]).unwrap().unwrap());
        assert!(vendors.join("one.icd").exists() && vendors.join("oclgrind.icd").exists());
        let folder = scratch.folder.clone();
        drop(scratch);
        assert!(!folder.exists());
    }
}
