//! Texts written by hand, with features that generated texts lack.
//!
//! They are examples of the documentation, in part, so they stay readable and valid; the changes are made by `change`.

use crate::finding::{Finding, SCHEMA};
use crate::graph::GraphCase;
use crate::oracle::Failure;

/// Programs in TVMScript and TE.
pub(super) const SCRIPTS: &[&str] = &[
    include_str!("programs/addone.py"),
    include_str!("programs/conv2d_resnet.py"),
    include_str!("programs/conv2d_texture.py"),
    include_str!("programs/nhwc_to_nchw4c_symbolic.py"),
    include_str!("programs/nhwc_to_nchwc.tvm.py"),
    include_str!("programs/rfc39_reorder.py"),
    include_str!("programs/rfc39_separators.py"),
    include_str!("programs/separators_texture.py"),
    include_str!("programs/tile_layout_padded.py"),
    include_str!("programs/wrong_map.py"),
    EVERYTHING,
];

/// A function with features that the examples lack.
const EVERYTHING: &str = r#"from tvm.script import tir as T

@T.prim_func
def everything(a: T.handle, B: T.Buffer((4, 8), "float32"), n: T.int32):
    A = T.match_buffer(a, (n, 8), "float16", elem_offset=0)
    for b in T.thread_binding(4, thread="blockIdx.x"):
        C = T.decl_buffer((8,), "float32", scope="local")
        for t in T.vectorized(8):
            C[t] = T.float32(0.5)
        for i in T.serial(n, annotations={"key": 1}):
            if i % 2 == 0 and not (i < 3):
                with T.LetStmt(T.max(i, 1)) as v:
                    C[i % 8] = T.Cast("float32", A[i, T.min(v, 7)]) * T.exp(C[i % 8])
            else:
                T.evaluate(0)
        for j in T.unroll(8):
            B[b, j] = T.Select(j < 4, C[j], T.float32(-1)) + T.if_then_else(j > 2, C[j - 2], T.float32(2))
"#;

/// XLA's shapes and layouts, index maps, formats, extents and tiles.
pub(super) const LAYOUTS: &[&str] = &[
    "F32[3,5]{1,0:T(2,2)}",
    "{1,0:T(8,128)(2,1)}",
    "(f32[2,3]{1,0}, (s8[], token[]), u4[<=7,?]{0,1:E(4)})",
    "f32[2,3]{1,0:D(D,C+~)#(u32)*(u16)P((f32[4]{0}, s32[7]{0}))}",
    "bf16[100,200]{1,0:T(8,128)(2,1)L(64)S(1)SC(0:17,40)M(8)}",
    "f32[2,3,5,7]{3,2,1,0:T(*,*,8,128)}",
    "lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]",
    "lambda *i: [*i[:-1], AXIS_SEPARATOR, i[-1] // 4, i[-1] % 4]",
    "lambda i, j: [i ^ (j >> 2), ~i & 7, abs(i - j), max(i, j) if i < j and not i == 0 else min(i, 3)]",
    "lambda i, j: [T.if_then_else(i < 3, i, j), i << 2 | j]",
    "NCHW4c",
    "OIhw4i16o4i",
    "NHWC->NCHW4c",
    "(8,128)(2,1)",
    "n,64,(c+3)//4",
    "16, 64, 64, 128",
    "c % 4 == 0 and 1 <= n <= 1024",
    "lambda p, q: 17 <= p * 4 + q",
    "16384x16384",
    "float32x4",
];

/// Graphs in both formats.
pub(super) const GRAPHS: &[&str] = &[
    include_str!("programs/graphs/block.json"),
    include_str!("programs/graphs/fire_modules.json"),
    include_str!("programs/graphs/mobilenet_block.json"),
    r#"{"nodes": [{"op": "null", "name": "x", "inputs": []},
 {"op": "tvm_op", "name": "relu", "attrs": {"func_name": "fused_relu", "num_inputs": "1", "num_outputs": "1",
  "flatten_data": "0"}, "inputs": [[0, 0, 0]]}],
"arg_nodes": [0], "heads": [[1, 0, 0]], "node_row_ptr": [0, 1, 2],
"attrs": {"shape": ["list_shape", [[1, 2, 7, 7, 4], [1, 2, 7, 7, 4]]], "dltype": ["list_str", ["float16", "float16"]],
 "storage_scope": ["list_str", ["global.texture", "global"]], "storage_id": ["list_int", [0, 1]]}}"#,
];

/// The file of a finding with this case.
pub(super) fn finding(case: &GraphCase) -> String {
    let finding = Finding {
        schema: SCHEMA.to_owned(),
        oracle: "planner".to_owned(),
        failure: Failure { what: "memory is overwritten".to_owned(), detail: "step0".to_owned() },
        origin: None,
        case: serde_json::to_value(case).unwrap_or_default(),
        text: String::new(),
        replay: String::new(),
    };
    serde_json::to_string(&finding).unwrap_or_default()
}
