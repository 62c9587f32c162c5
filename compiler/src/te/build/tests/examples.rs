//! Programs of `examples/`, built from Rust.

use std::path::Path;

use tilewright_ir::{BinaryOp, Expr, ReduceOp, Scalar, Scope, ThreadTag, TileRequest};

use super::{F32, assert_same, axes, compute, float, from_text, int, ints, layout};
use crate::te::Lowered;
use crate::te::build::{Builder, Built, LayoutLoops, Param, Tensor, binary, call, if_then_else, reduce, reduce_axis};

fn example(name: &str) -> Vec<Lowered> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    from_text(&std::fs::read_to_string(folder.join(name)).unwrap())
}

/// The only function of an example.
fn only(name: &str) -> Lowered {
    let mut read = example(name);
    assert_eq!(read.len(), 1, "{name}");
    read.remove(0)
}

fn rewritten(loops: LayoutLoops) -> Vec<crate::te::build::Loop> {
    match loops {
        LayoutLoops::Rewritten(loops) => loops,
        LayoutLoops::Kept(warning) => panic!("{warning}"),
    }
}

fn add_one() -> Built<(Builder, Vec<Param>)> {
    let mut te = Builder::new();
    let shape = ints([32, 32, 4]);
    let x = te.placeholder("X", &shape, F32)?;
    let y = compute(&mut te, "Y", &["i", "j", "k"], &shape, |te, i| binary(BinaryOp::Add, te.load(x, i)?, float(1.0)))?;
    let mut s = te.create_schedule(&[y])?;
    let xt = s.cache_read(x, Scope::Texture, &[y])?;
    let mut stage = s.stage(xt)?;
    let [i, j, k] = axes(&stage);
    stage.bind(i, ThreadTag::Block(0), None)?;
    stage.bind(j, ThreadTag::Thread(0), None)?;
    stage.vectorize(k)?;
    let mut stage = s.stage(y)?;
    let [i, j, k] = axes(&stage);
    let [io, jo, ..] = stage.tile(i, j, 4, 4)?;
    stage.bind(io, ThreadTag::Block(0), None)?;
    stage.bind(jo, ThreadTag::Thread(0), Some(&int(8)))?;
    stage.vectorize(k)?;
    assert_eq!(stage.loops().len(), 5);
    Ok((te, vec![x.into(), y.into()]))
}

/// Lowers the first schedule of a builder.
fn lower(te: &mut Builder, params: &[Param], name: &str) -> Lowered {
    let id = super::super::ScheduleId { builder: te.id, index: 0 };
    te.schedule(id).unwrap().lower(params, name).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn the_rfcs_addone_is_the_same_from_rust() {
    let (mut te, params) = add_one().unwrap();
    assert_same(&lower(&mut te, &params, "addone"), &only("addone.py"));
}

#[test]
fn the_parameters_of_a_function_follow_from_the_schedule() {
    let (mut te, params) = add_one().unwrap();
    let id = super::super::ScheduleId { builder: te.id, index: 0 };
    assert_eq!(te.schedule(id).unwrap().default_params(), params);
}

#[test]
fn layouts_and_reorders_are_the_same_from_rust() {
    let build = || -> Built<Lowered> {
        let mut te = Builder::new();
        let shape = ints([16, 64, 128]);
        let a = te.placeholder("A", &shape, F32)?;
        let b =
            compute(&mut te, "B", &["i", "j", "k"], &shape, |te, i| binary(BinaryOp::Mul, float(2.0), te.load(a, i)?))?;
        let mut s = te.create_schedule(&[b])?;
        let mut stage = s.stage(a)?;
        let map = layout(&stage, ["i", "j", "k"], &[], |[i, j, k]| {
            vec![i * int(64) + j, k.clone().floor_div(int(4)), k.floor_mod(int(4))]
        })?;
        assert!(rewritten(stage.transform_layout(&map)?).is_empty(), "an input has no loops");
        let mut stage = s.stage(b)?;
        let map = layout(&stage, ["i", "j", "k"], &[], |[i, j, k]| {
            vec![i.clone().floor_div(int(4)), int(128) * j + k, i.floor_mod(int(4))]
        })?;
        let loops = rewritten(stage.transform_layout(&map)?);
        stage.reorder(&[loops[0], loops[2], loops[1]])?;
        let params = s.default_params();
        Ok(s.lower(&params, "main").unwrap())
    };
    assert_same(&build().unwrap(), &only("rfc39_reorder.py"));
}

#[test]
fn separators_over_symbolic_shapes_are_the_same_from_rust() {
    let read = example("rfc39_separators.py");
    let maps: [(&str, &[usize]); 4] =
        [("flat", &[]), ("two_axes", &[2]), ("three_axes", &[1, 3]), ("split_axes", &[3])];
    for ((name, separators), read) in maps.into_iter().zip(&read) {
        let build = || -> Built<Lowered> {
            let mut te = Builder::new();
            let shape = ["M", "N", "P", "Q"].map(|name| te.symbol(name, tilewright_ir::DataType::INT32));
            let shape = shape.into_iter().map(|var| var.map(Expr::from)).collect::<Built<Vec<_>>>()?;
            let a = te.placeholder("A", &shape, F32)?;
            let b = te.compute("B", &shape, |te, i| Ok(binary(BinaryOp::Add, te.load(a, i)?, float(1.0))?.into()))?;
            let mut s = te.create_schedule(&[b])?;
            let mut stage = s.stage(b)?;
            let map = layout(&stage, ["m", "n", "p", "q"], separators, |[m, n, p, q]| {
                if name == "split_axes" {
                    vec![m, q.clone().floor_div(int(4)), n, p, q.floor_mod(int(4))]
                } else {
                    vec![m, n, p, q]
                }
            })?;
            stage.transform_layout(&map)?;
            let params = s.default_params();
            Ok(s.lower(&params, name).unwrap())
        };
        assert_same(&build().unwrap(), read);
    }
    assert_eq!(read.len(), maps.len());
}

#[test]
fn tiles_with_padding_are_the_same_from_rust() {
    let build = || -> Built<Lowered> {
        let mut te = Builder::new();
        let a = te.placeholder("A", &ints([5, 11]), F32)?;
        let b = compute(&mut te, "B", &["i", "j"], &ints([5, 11]), |te, i| {
            binary(BinaryOp::Mul, te.load(a, i)?, te.load(a, i)?)
        })?;
        let c = compute(&mut te, "C", &["i", "j"], &ints([11, 5]), |te, i| {
            binary(BinaryOp::Add, te.load(b, &[i[1].clone(), i[0].clone()])?, float(1.0))
        })?;
        let mut s = te.create_schedule(&[c])?;
        let tiles: [(Tensor, &str, Scalar, &[usize]); 3] = [
            (a, "{1,0:T(2,4)(2,1)}", Scalar::Int(0), &[]),
            (b, "{1,0:T(2,4)}", Scalar::Float(-1.5), &[]),
            (c, "{1,0:T(4,2)}", Scalar::Int(7), &[2]),
        ];
        for (tensor, text, pad, separators) in tiles {
            let mut stage = s.stage(tensor)?;
            let layout = tilewright_script::read_xla_layout(text, stage.tile_rank()?).unwrap();
            stage.tile_layout(TileRequest { layout, pad_value: Some(pad) }, separators)?;
        }
        let params = s.default_params();
        Ok(s.lower(&params, "main").unwrap())
    };
    assert_same(&build().unwrap(), &only("tile_layout_padded.py"));
}

#[test]
fn a_convolution_is_the_same_from_rust() {
    let build = || -> Built<Lowered> {
        let mut te = Builder::new();
        let data = te.placeholder("data", &ints([1, 56, 56, 64]), F32)?;
        let weight = te.placeholder("weight", &ints([3, 3, 64, 64]), F32)?;
        let nhwc = ["n", "h", "w", "c"];
        let padded = compute(&mut te, "padded", &nhwc, &ints([1, 58, 58, 64]), |te, i| {
            let [n, h, w, c] = i else { unreachable!("four axes") };
            let inside = |at: &Expr| {
                let low = binary(BinaryOp::Ge, at.clone(), int(1))?;
                Ok([low, binary(BinaryOp::Lt, at.clone(), int(57))?])
            };
            let bounds = [inside(h)?, inside(w)?].concat();
            let all = bounds.into_iter().reduce(Expr::and).unwrap();
            let moved = [n.clone(), h.clone() - int(1), w.clone() - int(1), c.clone()];
            if_then_else(all, te.load(data, &moved)?, float(0.0))
        })?;
        let reduced = [("kh", 3), ("kw", 3), ("ci", 64)];
        let reduced = reduced.map(|(name, extent)| reduce_axis(name, &int(0), &int(extent)).unwrap());
        let [kh, kw, ci] = reduced.each_ref().map(super::super::ReduceAxis::index);
        let shape = ints([1, 56, 56, 64]);
        let spatial: Vec<_> = nhwc.iter().zip(&shape).map(|(name, e)| super::axis(name, e).unwrap()).collect();
        let [n, h, w, c] = [0, 1, 2, 3].map(|at: usize| Expr::from(&spatial[at].var));
        let value = te.load(padded, &[n, h + kh.clone(), w + kw.clone(), ci.clone()])?;
        let value = binary(BinaryOp::Mul, value, te.load(weight, &[kh, kw, ci, c])?)?;
        let body = reduce(ReduceOp::Sum, value, &reduced.map(|axis| axis.axis))?;
        let conv = te.define("conv", spatial, body)?;

        let mut s = te.create_schedule(&[conv])?;
        for tensor in [data, padded, conv] {
            let mut stage = s.stage(tensor)?;
            let map = layout(&stage, nhwc, &[], |[n, h, w, c]| {
                vec![n, c.clone().floor_div(int(4)), h, w, c.floor_mod(int(4))]
            })?;
            let loops = rewritten(stage.transform_layout(&map)?);
            if tensor == padded {
                stage.parallel(loops[1])?;
            } else if tensor == conv {
                let fused = stage.fuse(&loops[..2])?;
                stage.parallel(fused)?;
            }
        }
        Ok(s.lower(&[data.into(), weight.into(), conv.into()], "conv2d").unwrap())
    };
    assert_same(&build().unwrap(), &only("conv2d_resnet.py"));
}

#[test]
fn caches_inlining_and_scopes_are_the_same_from_rust() {
    let text = "
A = te.placeholder((8, 12), name='A')
B = te.compute((8, 12), lambda i, j: te.exp(A[i, j]), name='B')
r = te.reduce_axis((2, 12), name='r')
C = te.compute((8,), lambda i: te.max(B[i, r], axis=r), name='C')
D = te.compute((8,), lambda i: C[i] * 0.5, name='D')
s = te.create_schedule(D.op)
s[B].compute_inline()
CL = s.cache_write(C, 'local')
s[C].set_scope('texture')
s[CL].reorder(s[CL].op.reduce_axis[0], s[CL].op.axis[0])
o, i = s[D].split(D.op.axis[0], nparts=4)
s[D].unroll(i)
s[D].pragma(o, 'unroll_explicit', True)
tvm.lower(s, [A, D], name='chain')
";
    let build = || -> Built<Lowered> {
        let mut te = Builder::new();
        let a = te.placeholder("A", &ints([8, 12]), F32)?;
        let b = compute(&mut te, "B", &["i", "j"], &ints([8, 12]), |te, i| {
            call(tilewright_ir::MathFn::Exp, vec![te.load(a, i)?])
        })?;
        let r = reduce_axis("r", &int(2), &int(12))?;
        let i = super::axis("i", &int(8))?;
        let source = te.load(b, &[Expr::from(&i.var), r.index()])?;
        let c = te.define("C", vec![i], reduce(ReduceOp::Max, source, &[r.axis])?)?;
        let d = compute(&mut te, "D", &["i"], &ints([8]), |te, i| binary(BinaryOp::Mul, te.load(c, i)?, float(0.5)))?;
        let mut s = te.create_schedule(&[d])?;
        s.stage(b)?.compute_inline()?;
        let cl = s.cache_write(c, Scope::Local)?;
        s.stage(c)?.set_scope(Scope::Texture)?;
        let mut stage = s.stage(cl)?;
        let order = [stage.reduce_axes(), stage.axes()].concat();
        stage.reorder(&order)?;
        let mut stage = s.stage(d)?;
        let i = stage.axes()[0];
        let (outer, inner) = stage.split(i, crate::te::build::SplitBy::Parts(4))?;
        stage.unroll(inner)?;
        stage.pragma(outer, "unroll_explicit", tilewright_ir::AttrValue::Bool(true))?;
        Ok(s.lower(&[a.into(), d.into()], "chain").unwrap())
    };
    assert_same(&build().unwrap(), &from_text(text)[0]);
}
