//! The programs of the RFCs, with the RFCs' numbers.

use tilewright_ir::{Bindings, Severity, StoreRole};

use super::super::{Lowered, evaluate};
use super::{claims, render};

fn example(name: &str) -> Vec<Lowered> {
    let path = format!("../examples/{name}");
    let source = std::fs::read_to_string(&path).unwrap();
    let program = tilewright_script::te::read(&source).unwrap_or_else(|errors| panic!("{path}: {errors:#?}"));
    evaluate(&program, None).unwrap_or_else(|errors| panic!("{path}: {errors:#?}"))
}

fn one(name: &str) -> Lowered {
    let mut lowered = example(name);
    assert_eq!(lowered.len(), 1, "{name}");
    lowered.remove(0)
}

/// The maps recorded for a buffer, and its separators.
fn layout(lowered: &Lowered, buffer: &str) -> (Vec<String>, Vec<usize>) {
    let (_, buffer) = lowered.func.buffer_map.iter().find(|(_, found)| found.name == buffer).expect("a parameter");
    let maps = lowered.func.attrs.layout_transform_map.iter().find(|(data, _)| *data == buffer.data);
    let maps = maps.map_or_else(Vec::new, |(_, maps)| maps.iter().map(ToString::to_string).collect());
    (maps, buffer.axis_separators.positions().to_vec())
}

#[test]
fn nhwc_to_nchwc_loops_over_the_physical_axes() {
    let lowered = one("rfc39_nhwc_to_nchwc.py");
    let expected = "for n < 16
  for c_outer < 32
    for h < 64
      for w < 64
        for c_inner < 4
          B[n, h, w, c_outer * 4 + c_inner] = A[n, h, w, c_outer * 4 + c_inner]
";
    assert_eq!(render(&lowered), expected);
    assert_eq!(layout(&lowered, "B"), (vec!["lambda n, h, w, c: [n, c // 4, h, w, c % 4]".to_owned()], Vec::new()));
    let (_, maps) = &lowered.func.attrs.layout_transform_map[0];
    assert_eq!(maps[0].eval(&[11, 37, 23, 101], &Bindings::new()), Ok(vec![11, 25, 37, 23, 1]));
}

#[test]
fn the_equivalent_definition_has_the_layout_by_itself() {
    let lowered = one("rfc39_nhwc_equivalent.py");
    let (_, output) = &lowered.func.buffer_map[1];
    assert_eq!(output.const_shape(), Some(vec![16, 32, 64, 64, 4]));
    assert!(lowered.func.attrs.layout_transform_map.is_empty());
}

#[test]
fn four_layouts_of_one_tensor_have_the_separators_of_the_guide() {
    let lowered = example("rfc39_separators.py");
    let separators: Vec<_> = lowered.iter().map(|lowered| layout(lowered, "B").1).collect();
    assert_eq!(separators, [vec![], vec![2], vec![1, 3], vec![3]]);
    let names: Vec<_> = lowered.iter().map(|lowered| lowered.func.name.as_str()).collect();
    assert_eq!(names, ["flat", "two_axes", "three_axes", "split_axes"]);
    let shape = lowered[0].definition.params[0].shape.clone();
    let symbols: Bindings = shape.iter().flat_map(tilewright_ir::Expr::vars).zip([2, 3, 5, 7]).collect();
    for lowered in &lowered {
        assert_eq!(claims::check(lowered, &symbols), 210);
    }
}

#[test]
fn layouts_in_sequence_compose_and_the_last_separators_stay() {
    let lowered = one("rfc39_separators_in_sequence.py");
    let (maps, separators) = layout(&lowered, "B");
    assert_eq!(maps.len(), 4);
    assert!(maps.iter().all(|map| !map.contains("SEPARATOR")), "{maps:?}");
    assert_eq!(separators, [3]);
    assert_eq!(claims::check(&lowered, &Bindings::new()), 2 * 7 * 9 * 17);
    assert!(render(&lowered).starts_with(
        "for m < 2\n  for q_outer < 5\n    for n < 7\n      for p < 9\n        for q_inner < 4\n          if "
    ));
}

#[test]
fn loops_over_a_transformed_tensor_can_be_reordered() {
    let lowered = one("rfc39_reorder.py");
    let text = render(&lowered);
    let loops: Vec<_> = text.lines().map(str::trim).take(3).collect();
    assert_eq!(loops, ["for i_outer < 4", "for i_inner < 4", "for axis1 < 8192"]);
    let store = "B[i_outer * 4 + i_inner, axis1 // 128, axis1 % 128] = 2.0 * A[i_outer * 4 + i_inner, axis1 // 128, axis1 % 128]";
    assert_eq!(text.lines().nth(3).map(str::trim), Some(store));
    assert_eq!(layout(&lowered, "A").0, ["lambda i, j, k: [i * 64 + j, k // 4, k % 4]"]);
    assert_eq!(layout(&lowered, "B").0, ["lambda i, j, k: [i // 4, 128 * j + k, i % 4]"]);
    assert_eq!(claims::check(&lowered, &Bindings::new()), 16 * 64 * 128);
}

#[test]
fn the_reference_section_gives_three_layouts() {
    let lowered = example("rfc39_reference.py");
    let maps: Vec<_> = lowered.iter().map(|lowered| layout(lowered, "x")).collect();
    let nchwc = "lambda n, h, w, c: [n, c // 4, h, w, c % 4]".to_owned();
    assert_eq!(maps[0], (vec!["lambda i, j: [j, i]".to_owned()], vec![]));
    assert_eq!(maps[1], (vec![nchwc.clone()], vec![]));
    assert_eq!(maps[2], (vec![nchwc], vec![3]));
    assert_eq!(claims::check(&lowered[0], &Bindings::new()), 64 * 128);
}

#[test]
fn addone_runs_as_printed() {
    let lowered = one("addone.py");
    let expected = "allocate X_texture[32, 32, 4] texture
  for i < 32 blockIdx.x
    for j < 32 threadIdx.x
      for k < 4 vectorized
        X_texture[i, j, k] = X[i, j, k]
  for i_outer < 8 blockIdx.x
    for j_outer < 8 threadIdx.x
      for i_inner < 4
        for j_inner < 4
          for k < 4 vectorized
            Y[i_outer * 4 + i_inner, j_outer * 4 + j_inner, k] = X_texture[i_outer * 4 + i_inner, j_outer * 4 + j_inner, k] + 1.0
";
    let expected = expected.replace("for i <", "for ax0 <").replace("for j <", "for ax1 <");
    let expected = expected.replacen("for k <", "for ax2 <", 1).replace("[i, j, k]", "[ax0, ax1, ax2]");
    assert_eq!(render(&lowered), expected);
    let roles: Vec<_> = lowered.evidence.stores.iter().map(|claim| (claim.role, claim.tensor.name.clone())).collect();
    assert_eq!(roles, [(StoreRole::Copy, "X".to_owned()), (StoreRole::Compute, "Y".to_owned())]);
    let holders: Vec<_> = lowered
        .evidence
        .holders
        .iter()
        .map(|holder| (holder.tensor.name.as_str(), holder.buffer.name.as_str()))
        .collect();
    assert_eq!(holders, [("X", "X"), ("Y", "Y"), ("X", "X_texture")]);
    assert_eq!(lowered.definition.stages.len(), 1, "caches are not in the definition");
    assert_eq!(claims::check(&lowered, &Bindings::new()), 2 * 32 * 32 * 4);
    let warnings: Vec<_> = lowered.warnings.iter().map(|warning| (warning.severity, warning.code)).collect();
    assert_eq!(warnings, [(Severity::Warning, "undefined-object")], "the slip `args.dtype` is told of");
}

#[test]
fn a_function_can_be_picked() {
    let source = std::fs::read_to_string("../examples/rfc39_reference.py").unwrap();
    let program = tilewright_script::te::read(&source).unwrap();
    let lowered = evaluate(&program, Some("nchwc")).unwrap();
    assert_eq!(lowered.len(), 1);
    assert_eq!(lowered[0].func.name, "nchwc");
    let errors = evaluate(&program, Some("nothing")).unwrap_err();
    assert_eq!(errors[0].code, "unknown-entry");
    assert!(errors[0].help.as_ref().is_some_and(|help| help.contains("nchwc_2d")));
}

#[test]
fn the_convolution_of_resnet_is_laid_out_in_blocks_of_four() {
    let lowered = one("conv2d_resnet.py");
    let text = render(&lowered);
    let expected = "allocate padded[1, 58, 58, 64] global
  for n < 1
    for c_outer < 16 parallel
      for h < 58
        for w < 58
          for c_inner < 4
";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("  for n_c_outer_fused < 16 parallel\n    for h < 56\n      for w < 56\n        for c_inner < 4\n          conv[0, h, w, n_c_outer_fused * 4 + c_inner] = 0.0\n          for kh < 3\n            for kw < 3\n              for ci < 64\n"), "{text}");
    assert!(!text.contains("if n_c"), "nothing is padded: {text}");
    let maps: Vec<_> = lowered.func.attrs.layout_transform_map.iter().map(|(data, _)| data.name().to_owned()).collect();
    assert_eq!(maps, ["data", "padded", "conv"]);
}

#[test]
fn symbolic_channels_leave_padding_behind_a_guard() {
    let text = render(&one("nhwc_to_nchw4c_symbolic.py"));
    let expected = "for i < n
  for k_outer < (c + 3) // 4
    for y < h
      for x < w
        for k_inner < 4
          if k_outer * 4 + k_inner < c
            B[i, y, x, k_outer * 4 + k_inner] = A[i, y, x, k_outer * 4 + k_inner] + 1.0
";
    assert_eq!(text, expected);
}

#[test]
fn options_of_a_target_are_not_ignored_silently() {
    let warnings = |target: &str| {
        let source = format!(
            "A = te.placeholder((8,), name=\"A\")\nB = te.compute((8,), lambda i: A[i] + 1, name=\"B\")\n\
             s = te.create_schedule(B.op)\nf = tvm.build(s, [A, B], {target})\n"
        );
        let program = tilewright_script::te::read(&source).unwrap();
        let lowered = evaluate(&program, None).unwrap();
        let texts = lowered[0].warnings.iter().map(|warning| {
            assert_eq!((warning.severity, warning.code), (Severity::Warning, "target-options"));
            let span = warning.labels.first().expect("a place in the text").span;
            (source[span.start as usize..span.end as usize].to_owned(), warning.message.clone())
        });
        texts.collect::<Vec<_>>()
    };
    for quiet in ["\"opencl\"", "target=\"opencl\"", "tvm.target.Target(\"opencl\")", "{\"kind\": \"opencl\"}"] {
        assert_eq!(warnings(quiet), [], "{quiet}");
    }
    let text = "\"opencl -device=adreno\"".to_owned();
    let message = "the target option `-device=adreno` has no effect".to_owned();
    assert_eq!(warnings(&text), [(text.clone(), message.clone())]);
    assert_eq!(warnings(&format!("tvm.target.Target({text})")), [(text, message)]);
    let dictionary =
        warnings("tvm.target.Target({\"kind\": \"opencl\", \"device\": \"adreno\", \"max_num_threads\": 256})");
    assert_eq!(dictionary[0].1, "the target options `device`, `max_num_threads` have no effect");
}
