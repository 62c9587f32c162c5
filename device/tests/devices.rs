//! Lists the devices, and selects one of them.

mod common;

use tilewright_device::{DeviceError, DeviceInfo, DeviceType, Loader, Survey, devices, select, survey};

fn info(index: usize, name: &str, platform: &str) -> DeviceInfo {
    DeviceInfo {
        index,
        platform: platform.into(),
        name: name.into(),
        vendor: String::new(),
        driver_version: String::new(),
        opencl_version: "OpenCL 3.0 x".into(),
        opencl_c_version: String::new(),
        device_type: DeviceType::Cpu,
        available: true,
        compute_units: 1,
        max_work_group_size: 1,
        max_work_item_sizes: [1; 3],
        address_bits: 64,
        global_memory_bytes: 1,
        max_alloc_bytes: 1,
        local_memory_bytes: 1,
        images: false,
        image2d_max_width: 0,
        image2d_max_height: 0,
        image_pitch_alignment: 0,
        half_images: false,
        fp64: false,
        fp16: false,
        correctly_rounded_divide_sqrt: false,
        denormals: false,
        little_endian: true,
        extensions: Vec::new(),
    }
}

#[test]
fn a_device_is_there_where_one_is_required() {
    let is_set = |name, value| std::env::var(name).is_ok_and(|found| found == value);
    if is_set("CI", "true") || is_set("TILEWRIGHT_REQUIRE_OPENCL", "1") {
        let survey = survey();
        assert!(!survey.devices.is_empty(), "no OpenCL device: {survey:?}");
    } else if devices().expect("the devices can be listed").is_empty() {
        common::say_skipped("no OpenCL device");
    }
}

#[test]
fn the_list_of_devices_is_the_same_twice_and_makes_sense() {
    let list = devices().expect("the devices can be listed");
    let names = |list: &[DeviceInfo]| list.iter().map(DeviceInfo::label).collect::<Vec<_>>();
    assert_eq!(names(&list), names(&devices().expect("listed again")));
    for (place, info) in list.iter().enumerate() {
        assert_eq!(info.index, place);
        assert!(info.opencl_version_pair() >= (1, 0), "{}", info.opencl_version);
        assert!(info.max_alloc_bytes <= info.global_memory_bytes);
        assert!(info.max_work_group_size > 0 && info.compute_units > 0);
        assert_eq!(info.images, info.image2d_max_width > 0 && info.image2d_max_height > 0);
        eprintln!("{info:#?}");
    }
}

#[test]
fn a_device_is_selected_by_index_or_part_of_a_name() {
    let list = [
        info(0, "GeForce RTX 3090", "NVIDIA CUDA"),
        info(1, "pthread-skylake", "Portable Computing Language (PoCL)"),
        info(2, "Oclgrind Simulator", "Oclgrind"),
    ];
    let index = |wanted| select(&list, Some(wanted)).map(|info| info.index);
    assert_eq!(index("0"), Ok(0));
    assert_eq!(index("pocl"), Ok(1));
    assert_eq!(index("OCLGRIND"), Ok(2));
    assert_eq!(index("rtx 3090"), Ok(0));
    assert_eq!(select(&list, None).map(|info| info.index), Ok(0));
}

#[test]
fn a_name_that_stands_in_the_version_only_is_found_and_a_number_is_not() {
    let mut pocl = info(0, "pthread-skylake", "Portable Computing Language");
    pocl.opencl_version = "OpenCL 3.0 PoCL HSTR: pthread".to_owned();
    let list = [pocl];
    assert_eq!(select(&list, Some("pocl")).map(|info| info.index), Ok(0));
    assert!(select(&list, Some("3")).is_err());
}

#[test]
fn digits_are_an_index_and_an_empty_text_is_nothing() {
    let list = [info(0, "cpu-skylake-avx512", "Portable Computing Language"), info(1, "GPU 3090", "Vendor")];
    for wanted in ["5", "512", "3090", "99999999999999999999999", "3.0", "", "  "] {
        let refused = select(&list, Some(wanted));
        assert!(matches!(refused, Err(DeviceError::NoDevice { .. })), "{wanted:?}: {refused:?}");
    }
    assert_eq!(select(&list, Some(" 1 ")).map(|info| info.index), Ok(1));
    assert_eq!(select(&list, Some("avx512")).map(|info| info.index), Ok(0));
}

#[test]
fn a_survey_without_devices_says_why() {
    let none = Survey { loader: Loader::Missing("libOpenCL.so.1 is not there".into()), ..Survey::default() };
    let error = none.select(None).expect_err("no device");
    assert_eq!(error.to_string(), "no OpenCL: libOpenCL.so.1 is not there");
    assert!(error.is_absent());
    assert!(Survey::default().select(Some("0")).expect_err("no device").to_string().contains("built without it"));
    let crash = DeviceError::Process { how: "ended with signal SIGABRT".into(), detail: "no linker".into() };
    let lost = Survey { faults: vec![crash.clone()], ..Survey::default() };
    assert_eq!(lost.select(None), Err(crash.clone()));
    assert!(!crash.is_absent(), "a driver that crashes is no reason to skip");
    assert_eq!(crash.to_string(), "the OpenCL driver's process ended with signal SIGABRT: no linker");
}

#[test]
fn a_selector_that_names_none_or_several_is_an_error_with_the_list() {
    let list = [info(0, "GPU A", "Vendor"), info(1, "GPU B", "Vendor")];
    let none = select(&list, Some("7")).expect_err("no such device");
    assert!(none.is_absent());
    assert!(none.to_string().contains("0: GPU A (Vendor), 1: GPU B (Vendor)"), "{none}");
    let several = select(&list, Some("gpu")).expect_err("two devices");
    assert!(matches!(&several, DeviceError::Ambiguous { matches, .. } if matches.len() == 2));
    assert!(!several.is_absent());
    assert_eq!(select(&[], None), Err(DeviceError::NoOpenCl));
    assert!(DeviceError::NoOpenCl.is_absent());
}
