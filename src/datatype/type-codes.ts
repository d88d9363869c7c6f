/** Numbers of base types, the same in TypeScript and in native/. */
export const TypeCode = Object.freeze({
  INT8: 0,
  UINT8: 1,
  INT16: 2,
  UINT16: 3,
  INT32: 4,
  UINT32: 5,
  INT64: 6,
  UINT64: 7,
  FLOAT32: 8,
  FLOAT64: 9,
  BYTE: 10,
  FLOAT_INT: 11,
  DOUBLE_INT: 12,
  LONG_INT: 13,
  SHORT_INT: 14,
  TWO_INT: 15,
});
