/** Single elements at byte offsets of an array of whatever type, aligned or not. */
import { DATA_SIZES, type TypedArray } from './base-types.ts';
import { TypeCode } from './type-codes.ts';

/** What an element is to JavaScript. */
export type Scalar = number | bigint;

/** An array as its bytes. */
export type ScalarView = DataView;

export function placeOf(array: TypedArray): ScalarView {
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

export function readScalar(place: ScalarView, type: number, at: number): Scalar {
  switch (type) {
    case TypeCode.INT8:
      return place.getInt8(at);
    case TypeCode.INT16:
      return place.getInt16(at, LITTLE_ENDIAN);
    case TypeCode.UINT16:
      return place.getUint16(at, LITTLE_ENDIAN);
    case TypeCode.INT32:
      return place.getInt32(at, LITTLE_ENDIAN);
    case TypeCode.UINT32:
      return place.getUint32(at, LITTLE_ENDIAN);
    case TypeCode.INT64:
      return place.getBigInt64(at, LITTLE_ENDIAN);
    case TypeCode.UINT64:
      return place.getBigUint64(at, LITTLE_ENDIAN);
    case TypeCode.FLOAT32:
      return place.getFloat32(at, LITTLE_ENDIAN);
    case TypeCode.FLOAT64:
      return place.getFloat64(at, LITTLE_ENDIAN);
    default:
      return place.getUint8(at);
  }
}

/** Integers wrap, so that those with and without a sign are the same bits. */
export function writeScalar(place: ScalarView, type: number, at: number, value: Scalar): void {
  switch (type) {
    case TypeCode.INT16:
    case TypeCode.UINT16:
      place.setUint16(at, value as number, LITTLE_ENDIAN);
      break;
    case TypeCode.INT32:
    case TypeCode.UINT32:
      place.setUint32(at, value as number, LITTLE_ENDIAN);
      break;
    case TypeCode.INT64:
    case TypeCode.UINT64:
      place.setBigUint64(at, value as bigint, LITTLE_ENDIAN);
      break;
    case TypeCode.FLOAT32:
      place.setFloat32(at, value as number, LITTLE_ENDIAN);
      break;
    case TypeCode.FLOAT64:
      place.setFloat64(at, value as number, LITTLE_ENDIAN);
      break;
    default:
      place.setUint8(at, value as number);
  }
}

/**
 * Copies the bits of an element. As a number, a signalling NaN of single precision becomes a quiet one, and the
 * language lets engines change the bits of any NaN.
 * @param type no pair
 */
export function copyScalar(to: ScalarView, toAt: number, from: ScalarView, fromAt: number, type: number): void {
  switch (DATA_SIZES[type]) {
    case 1:
      to.setUint8(toAt, from.getUint8(fromAt));
      break;
    case 2:
      to.setUint16(toAt, from.getUint16(fromAt));
      break;
    case 4:
      to.setUint32(toAt, from.getUint32(fromAt));
      break;
    default: {
      const second = from.getUint32(fromAt + 4);
      to.setUint32(toAt, from.getUint32(fromAt));
      to.setUint32(toAt + 4, second);
    }
  }
}
