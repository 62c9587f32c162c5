//! The environment variables with which worker processes configure OpenCL drivers, for running
//! kernels by the thousand.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// The libraries of Oclgrind's packages. The packages do not register the driver with any OpenCL
/// loader.
const OCLGRIND: [&str; 3] = [
    "/usr/lib/oclgrind/liboclgrind-rt-icd.so",
    "/usr/lib/x86_64-linux-gnu/oclgrind/liboclgrind-rt-icd.so",
    "/usr/local/lib/oclgrind/liboclgrind-rt-icd.so",
];

/// The folder in which OpenCL loaders look for drivers.
const VENDORS: &str = "/etc/OpenCL/vendors";

/// A temporary folder for the files that the drivers of one process write. Removed when dropped.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Creates a folder of its own among the temporary files.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new() -> io::Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("tilewright-drivers-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The environment variables for a worker process. Kernels are compiled once and not cached;
    /// Oclgrind is available if it is installed, checks for data races, and writes its reports to a
    /// file of this process alone, which the oracle `device` reads.
    ///
    /// Variables that are set in the environment of this process are not changed.
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

    /// Creates a folder that registers all drivers of the system and Oclgrind. `None` if Oclgrind
    /// is not installed.
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
        // The trailing slash makes ocl-icd treat the path as a folder.
        Ok(Some(folder.join("").into()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A temporary folder that cannot be removed is no reason to fail.
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
