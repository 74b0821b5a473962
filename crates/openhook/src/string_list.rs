//! String constants with a list of all of them, each written once.

/// Defines the constants and `ALL`.
macro_rules! string_list {
    ($(#[$list_doc:meta])* ALL: [$count:literal]; $($(#[$doc:meta])* $name:ident = $text:literal;)+) => {
        $($(#[$doc])* pub const $name: &str = $text;)+

        $(#[$list_doc])*
        pub const ALL: [&str; $count] = [$($name),+];
    };
}
pub(crate) use string_list;
