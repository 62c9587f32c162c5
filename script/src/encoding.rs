//! Recognises files that are not text in UTF-8, so that one error says what they are.
//!
//! ```
//! let utf16: Vec<u8> = "A = te.placeholder((3, 4))".encode_utf16().flat_map(u16::to_le_bytes).collect();
//! let found = tilewright_script::encoding::diagnose(&utf16).expect("no UTF-8");
//! assert!(found.message.contains("UTF-16"));
//! assert!(tilewright_script::encoding::diagnose(b"A = te.placeholder((3, 4))").is_none());
//! ```

use tilewright_ir::Diagnostic;

/// How many bytes are looked at.
const HEAD: usize = 4096;

/// First bytes of formats, the name of each, and what it is.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x7fELF", "an ELF object"),
    (b"PK\x03\x04", "a ZIP archive, such as a PyTorch or Keras model"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF-", "a PDF document"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"ML\xefR", "MLIR bytecode"),
    (b"\x03\x02\x23\x07", "SPIR-V"),
];

/// The help for text in another encoding.
const RECODE: &str = "save the file as UTF-8 text";
/// The help for what is no text.
const NO_TEXT: &str = "give a text: TVMScript, TE, or the JSON of a graph";

/// Returns the error for a file that is text in another encoding or no text at all, and `None` for one that may be text in
/// UTF-8.
pub fn diagnose(bytes: &[u8]) -> Option<Diagnostic> {
    let head = &bytes[..bytes.len().min(HEAD)];
    let fault = |code, message: String, help| Some(Diagnostic::error(code, None, message).with_help(help));
    if let Some((_, name)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return fault("binary", format!("this is {name}, which is not read here"), NO_TEXT);
    }
    if let Some(name) = wide_encoding(head) {
        return fault("not-utf8", format!("this is text in {name}, not in UTF-8"), RECODE);
    }
    if is_onnx(head) {
        let message = "this is an ONNX model in its binary form, which is not read here".to_owned();
        return fault("binary", message, NO_TEXT);
    }
    if let Some(at) = head.iter().position(|byte| is_no_text(*byte)) {
        let message = format!("this is a binary file, not text: byte {at} is {:#04x}", head[at]);
        return fault("binary", message, NO_TEXT);
    }
    None
}

/// The name of the encoding if the characters have two or four bytes each.
fn wide_encoding(head: &[u8]) -> Option<&'static str> {
    match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => return Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => return Some("UTF-16"),
        _ => {}
    }
    // Programs are nearly all ASCII, of which the upper bytes are zero.
    let zeros = |step: usize, from: usize| {
        let all = head.chunks_exact(step).filter_map(|chunk| chunk.get(from));
        let (zeros, count) = all.fold((0, 0), |(zeros, count), byte| (zeros + usize::from(*byte == 0), count + 1));
        (count > 0, 10 * zeros >= 9 * count, 10 * zeros <= count)
    };
    let mostly = |step, from| matches!(zeros(step, from), (true, true, _));
    let rarely = |step, from| matches!(zeros(step, from), (true, _, true));
    if (rarely(4, 0) && (1..4).all(|from| mostly(4, from))) || (rarely(4, 3) && (0..3).all(|from| mostly(4, from))) {
        return Some("UTF-32");
    }
    let is_utf16 = (rarely(2, 0) && mostly(2, 1)) || (rarely(2, 1) && mostly(2, 0));
    is_utf16.then_some("UTF-16 without a byte order mark")
}

/// Whether a file begins as an ONNX model does: field 1 of the protobuf, the version of the format, then another field.
fn is_onnx(head: &[u8]) -> bool {
    // Strings and messages of the fields 2 to 8, and 14, which is `metadata_props`; 5 is a number.
    matches!(head, [0x08, 1..=64, 0x12 | 0x1a | 0x22 | 0x28 | 0x32 | 0x3a | 0x42 | 0x72, ..])
}

/// Whether no text has the byte: control characters other than tab, line ends, form feed and escape.
fn is_no_text(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | 0x1b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "from tvm import te\nA = te.placeholder((3, 4))\n";

    fn message(bytes: &[u8]) -> Option<String> {
        diagnose(bytes).map(|fault| fault.message)
    }

    #[test]
    fn every_wide_encoding_is_named() {
        let little: Vec<u8> = PROGRAM.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = PROGRAM.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let four: Vec<u8> = PROGRAM.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for (bytes, said) in [
            (little.clone(), "UTF-16 without"),
            (big.clone(), "UTF-16 without"),
            ([&[0xff, 0xfe][..], &little].concat(), "UTF-16"),
            ([&[0xfe, 0xff][..], &big].concat(), "UTF-16"),
            (four, "UTF-32"),
        ] {
            assert!(message(&bytes).is_some_and(|found| found.contains(said)), "{said}: {:?}", message(&bytes));
        }
    }

    #[test]
    fn binary_files_are_named() {
        for (bytes, said) in [
            (&b"\x08\x07\x12\x04test:\x00"[..], "ONNX"),
            (b"\x7fELF\x02\x01", "ELF"),
            (b"x = \x00", "byte 4 is 0x00"),
            (b"\x01", "byte 0 is 0x01"),
        ] {
            assert!(message(bytes).is_some_and(|found| found.contains(said)), "{said}: {:?}", message(bytes));
        }
    }

    #[test]
    fn text_is_text() {
        for text in [PROGRAM, "", "x", "\u{feff}x = 1\r\n", "# Grüße\n\tx = 1\x0c\n", "a\rb\r", "\u{1b}[1m"] {
            assert_eq!(message(text.as_bytes()), None, "{text:?}");
        }
    }
}
