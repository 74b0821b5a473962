//! Redaction on the way out: a value is written without its secrets.
//!
//! Every text is looked at, and one whose name says what it is, is hidden, also
//! when there are several of them in lists.

use std::borrow::Cow;
use std::cell::Cell;

use serde::Serialize;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::{cut, is_secret_name, is_worth_hiding, mark, name_kind, text};

/// What kind of secret a text is, when its name says that it is one.
type Kind = Option<&'static str>;

/// What a value is for, where it stands.
#[derive(Clone, Copy)]
enum Role<'a> {
    Value(Kind),
    /// The name of a value; tells what kind of secret that one is.
    Name(&'a Cell<Kind>),
}

impl Role<'_> {
    fn kind(self) -> Kind {
        match self {
            Role::Value(kind) => kind,
            Role::Name(_) => None,
        }
    }
}

/// A value that is written without its secrets.
pub struct Clean<'a, T: ?Sized> {
    value: &'a T,
    role: Role<'a>,
}

impl<'a, T: ?Sized> Clean<'a, T> {
    pub fn new(value: &'a T) -> Self {
        Self::of(value, None)
    }

    fn of(value: &'a T, kind: Kind) -> Self {
        let role = Role::Value(kind);
        Self { value, role }
    }
}

fn kind_of(name: &str) -> Kind {
    is_secret_name(name).then(|| name_kind(name))
}

impl<T: Serialize + ?Sized> Serialize for Clean<'_, T> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let role = self.role;
        self.value.serialize(Cleaning { out, role })
    }
}

struct Cleaning<'a, S> {
    out: S,
    role: Role<'a>,
}

macro_rules! as_it_is {
    ($($method:ident($type:ty);)*) => {
        $(fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.out.$method(value)
        })*
    };
}

impl<S: Serializer> Serializer for Cleaning<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Parts<S::SerializeSeq>;
    type SerializeTuple = Parts<S::SerializeTuple>;
    type SerializeTupleStruct = Parts<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Parts<S::SerializeTupleVariant>;
    type SerializeMap = Parts<S::SerializeMap>;
    type SerializeStruct = Parts<S::SerializeStruct>;
    type SerializeStructVariant = Parts<S::SerializeStructVariant>;

    as_it_is! {
        serialize_bool(bool);
        serialize_i8(i8);
        serialize_i16(i16);
        serialize_i32(i32);
        serialize_i64(i64);
        serialize_i128(i128);
        serialize_u8(u8);
        serialize_u16(u16);
        serialize_u32(u32);
        serialize_u64(u64);
        serialize_u128(u128);
        serialize_f32(f32);
        serialize_f64(f64);
        serialize_bytes(&[u8]);
        serialize_unit_struct(&'static str);
    }

    fn serialize_str(self, string: &str) -> Result<S::Ok, S::Error> {
        match self.role {
            Role::Name(kind) => {
                kind.set(kind_of(string));
                return self.out.serialize_str(string);
            }
            Role::Value(Some(kind)) if is_worth_hiding(string.as_bytes()) => {
                return self.out.serialize_str(&mark(kind));
            }
            Role::Value(_) => {}
        }
        let short = cut(string);
        let clean = text(&short).map_or(short, Cow::Owned);
        self.out.serialize_str(&clean)
    }

    fn serialize_char(self, value: char) -> Result<S::Ok, S::Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.out.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let role = self.role;
        self.out.serialize_some(&Clean { value, role })
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.out.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let role = self.role;
        self.out
            .serialize_newtype_struct(name, &Clean { value, role })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = Clean::of(value, kind_of(variant));
        self.out
            .serialize_newtype_variant(name, index, variant, &value)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        let kind = self.role.kind();
        let out = self.out.serialize_seq(len)?;
        Ok(Parts { out, kind })
    }

    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        let kind = self.role.kind();
        let out = self.out.serialize_tuple(len)?;
        Ok(Parts { out, kind })
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, S::Error> {
        let kind = self.role.kind();
        let out = self.out.serialize_tuple_struct(name, len)?;
        Ok(Parts { out, kind })
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        let kind = kind_of(variant);
        let out = self
            .out
            .serialize_tuple_variant(name, index, variant, len)?;
        Ok(Parts { out, kind })
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        let out = self.out.serialize_map(len)?;
        Ok(Parts { out, kind: None })
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStruct, S::Error> {
        let out = self.out.serialize_struct(name, len)?;
        Ok(Parts { out, kind: None })
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        let out = self
            .out
            .serialize_struct_variant(name, index, variant, len)?;
        Ok(Parts { out, kind: None })
    }
}

struct Parts<O> {
    out: O,
    /// Members of a list have the name that the list has; in an object, that of
    /// the value that comes next.
    kind: Kind,
}

macro_rules! lists {
    ($($trait:ident $method:ident;)*) => {
        $(impl<O: $trait> $trait for Parts<O> {
            type Ok = O::Ok;
            type Error = O::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), O::Error> {
                self.out.$method(&Clean::of(value, self.kind))
            }

            fn end(self) -> Result<O::Ok, O::Error> {
                self.out.end()
            }
        })*
    };
}

lists! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! structs {
    ($($trait:ident)*) => {
        $(impl<O: $trait> $trait for Parts<O> {
            type Ok = O::Ok;
            type Error = O::Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), O::Error> {
                self.out.serialize_field(name, &Clean::of(value, kind_of(name)))
            }

            fn end(self) -> Result<O::Ok, O::Error> {
                self.out.end()
            }
        })*
    };
}

structs! { SerializeStruct SerializeStructVariant }

impl<O: SerializeMap> SerializeMap for Parts<O> {
    type Ok = O::Ok;
    type Error = O::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), O::Error> {
        let kind = Cell::new(None);
        let role = Role::Name(&kind);
        self.out.serialize_key(&Clean { value, role })?;
        self.kind = kind.get();
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), O::Error> {
        self.out.serialize_value(&Clean::of(value, self.kind))
    }

    fn end(self) -> Result<O::Ok, O::Error> {
        self.out.end()
    }
}
