use pleiad_model::Number;
use proptest::prelude::*;

use super::{Lexer, Symbol, Token};

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer::new(text);
    std::iter::from_fn(|| Some(lexer.advance().token).filter(|token| *token != Token::End)).collect()
}

#[track_caller]
fn check(text: &str, want: Token<'_>) {
    assert_eq!(tokens(text), [want], "{text}");
}

fn string(text: &str) -> Token<'static> {
    Token::String(text.to_owned())
}

#[test]
fn words_are_letters_of_any_script() {
    check("abc", Token::Word("abc"));
    check("_rid2", Token::Word("_rid2"));
    check("größe", Token::Word("größe"));
    check("価格", Token::Word("価格"));
    check("SELECT", Token::Word("SELECT"));
}

#[test]
fn parameters_keep_their_at_sign() {
    check("@id", Token::Parameter("@id"));
    check("@_1", Token::Parameter("@_1"));
    assert_eq!(tokens("@1"), [Token::Invalid, Token::Number(Number::Int(1))]);
}

#[test]
fn numbers() {
    check("0", Token::Number(Number::Int(0)));
    check("105", Token::Number(Number::Int(105)));
    check("9223372036854775807", Token::Number(Number::Int(i64::MAX)));
    check("9223372036854775808", Token::Number(Number::UInt(1 << 63)));
    check("18446744073709551616", Token::Number(Number::Float(18446744073709551616.0)));
    check("1.5", Token::Number(Number::Float(1.5)));
    check(".5", Token::Number(Number::Float(0.5)));
    check("1.", Token::Number(Number::Float(1.0)));
    check("1e-5", Token::Number(Number::Float(1e-5)));
    check("2E3", Token::Number(Number::Float(2000.0)));
    check("1e999", Token::Number(Number::Float(f64::INFINITY)));
    check("0xFF", Token::Number(Number::Int(255)));
    check("0xffffffffffffffff", Token::Number(Number::UInt(u64::MAX)));
    check("0x10000000000000000", Token::Number(Number::Float(18446744073709551616.0)));
    for broken in ["12ab", "0x", "0xg", "1e", "1e5x", "1.x"] {
        check(broken, Token::Invalid);
    }
    assert_eq!(tokens("1e+")[0], Token::Invalid);
}

#[test]
fn strings_in_either_quote() {
    check("'a'", string("a"));
    check(r#""it's""#, string("it's"));
    check("''", string(""));
    check(r#"'\'\"\\\/\b\f\n\r\t'"#, string("'\"\\/\u{8}\u{c}\n\r\t"));
    check(r"'\u0041\u00e9'", string("Aé"));
    check(r"'\ud83d\ude00'", string("😀"));
    check("'two\nlines'", string("two\nlines"));
    for broken in ["'open", "\"open'", "'", r"'\x'", r"'\u12'", r"'\ud83d'", r"'\ude00'", r"'\ud83d\u0041'", "'\\"] {
        check(broken, Token::Invalid);
    }
}

#[test]
fn quotes_are_not_doubled() {
    assert_eq!(tokens("'a''b'"), [string("a"), string("b")]);
}

#[test]
fn the_longest_symbol_wins() {
    use Symbol::*;
    let symbols =
        |text| tokens(text).into_iter().map(|t| if let Token::Symbol(s) = t { Some(s) } else { None }).collect();
    let check = |text, want: &[Symbol]| {
        let got: Option<Vec<Symbol>> = symbols(text);
        assert_eq!(got.as_deref(), Some(want), "{text}");
    };
    check(">>> >> > >=", &[ShiftRightUnsigned, ShiftRight, Greater, GreaterOrEqual]);
    check("<< <= <> < !=", &[ShiftLeft, LessOrEqual, NotEqual, Less, NotEqual]);
    check("|| | ?? ?", &[DoublePipe, Pipe, DoubleQuestion, Question]);
    check("()[]{},.:", &[OpenParen, CloseParen, OpenBracket, CloseBracket, OpenBrace, CloseBrace, Comma, Dot, Colon]);
    check("* / % + - ~ = & ^", &[Star, Slash, Percent, Plus, Minus, Tilde, Equal, And, Caret]);
}

#[test]
fn comments_run_to_the_end_of_the_line() {
    assert_eq!(tokens("a -- b 'c\nd--"), [Token::Word("a"), Token::Word("d")]);
    assert_eq!(tokens("--"), []);
    assert_eq!(tokens("1 --2\n"), [Token::Number(Number::Int(1))]);
}

#[test]
fn invalid_characters_are_invalid_tokens() {
    for text in ["#", "!", "$", "@", "\\", ";", "\u{0}", "\u{ff1b}"] {
        check(text, Token::Invalid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn tokens_are_ordered_and_reach_the_end(text in any::<String>()) {
        let mut lexer = Lexer::new(&text);
        let mut at = 0;
        loop {
            let lexed = lexer.advance();
            prop_assert!(lexed.span.start >= at && lexed.span.end <= text.len());
            if lexed.token == Token::End {
                prop_assert_eq!(lexed.span.start, text.len());
                break;
            }
            prop_assert!(lexed.span.end > lexed.span.start);
            at = lexed.span.end;
        }
    }

    #[test]
    fn escaped_strings_round_trip(text in any::<String>()) {
        let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let literal = format!("'{escaped}'");
        prop_assert_eq!(tokens(&literal), [string(&text)]);
    }
}
