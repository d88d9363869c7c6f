/**
 * The arrays of the last call that fetches, found to be of one type, and their first elements to lie apart. Most
 * programs use the same ones again and again, and then nothing is looked at.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { tagOf } from '../../intrinsics.ts';
import type { ElementKind } from './element-kind.ts';
import { kindOf } from './element-kinds.ts';

/** Of so many calls with other arrays, one is remembered: that costs more than to look. A power of two. */
const SELDOM = 8;

/** An array that no caller has. */
const NONE = new Uint8Array(0);

export class LastArrays {
  #origin: TypedArray = NONE;
  #compare: TypedArray = NONE;
  #result: TypedArray = NONE;
  #kind: ElementKind | undefined;
  #others = 0;

  /** What kind all of the arrays are; `undefined` if they are not one, or not apart. */
  kindOf(origin: TypedArray | null, result: TypedArray): ElementKind | undefined {
    if (result === this.#result && origin === this.#origin) return this.#kind;
    return origin === null ? undefined : this.#look(origin, origin, result);
  }

  /** The same of three. */
  kindOfAll(origin: TypedArray, compare: TypedArray, result: TypedArray): ElementKind | undefined {
    if (result === this.#result && compare === this.#compare && origin === this.#origin) return this.#kind;
    return this.#look(origin, compare, result);
  }

  #look(origin: TypedArray, compare: TypedArray, result: TypedArray): ElementKind | undefined {
    const tag = tagOf(result);
    const kind = kindOf(tag);
    if (kind === undefined || tagOf(origin) !== tag || tagOf(compare) !== tag) return undefined;
    if (!kind.apart(result, origin, compare)) return undefined;
    this.#others = (this.#others + 1) & (SELDOM - 1);
    if (this.#others === 0) {
      this.#origin = origin;
      this.#compare = compare;
      this.#result = result;
      this.#kind = kind;
    }
    return kind;
  }
}
