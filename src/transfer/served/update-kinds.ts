/**
 * What carries out the accumulates of a window whose memory is reached by requests (hint `update`; dissertation,
 * chapter 7). Each type goes one way in a window, so that updates of an element are atomic towards each other.
 */
import { TypeCode } from '../../datatype/type-codes.ts';

interface UpdateScheme<N extends string> {
  /** Its value of the hint. */
  readonly name: N;
  /** Windows whose hints name none have this one. */
  readonly isDefault?: true;
  /**
   * Whether the target's processor updates elements of a type, not the device. Without it, it updates none.
   * @param inBulk the device would do it under stripes, whatever the type is
   */
  byTarget?(base: number, inBulk: boolean): boolean;
}

function updateScheme<const N extends string>(scheme: UpdateScheme<N>): UpdateScheme<N> {
  return scheme;
}

const isWide = (base: number): boolean => base === TypeCode.INT64 || base === TypeCode.UINT64;

/** Their order gives the numbers by which ranks compare their hints. */
const UPDATES = [
  updateScheme({ name: 'by-requests', isDefault: true }),
  updateScheme({ name: 'by-target', byTarget: () => true }),
  updateScheme({ name: 'by-type', byTarget: (base, inBulk) => inBulk || !isWide(base) }),
] as const;

export type UpdateSchemeName = (typeof UPDATES)[number]['name'];

export const UPDATE_SCHEMES: readonly UpdateSchemeName[] = UPDATES.map(({ name }) => name);

export const DEFAULT_UPDATE: UpdateSchemeName = UPDATES.find(({ isDefault }) => isDefault)!.name;

export function updateNamed(name: UpdateSchemeName): UpdateScheme<UpdateSchemeName> {
  return UPDATES.find((scheme) => scheme.name === name)!;
}
