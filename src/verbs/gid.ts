/**
 * GIDs: the addresses of ports and of multicast groups, as text in the notation of IPv6 addresses, and as four words.
 *
 * On RoCE a GID is an IP address: `::ffff:` and an IPv4 address, or an IPv6 address. A group's begins with `ff`, or is
 * an IPv4 multicast address (224.0.0.0 to 239.255.255.255): Linux' `rdma_is_multicast_addr`.
 */
import { isIPv6 } from 'node:net';
import { RmaError, show } from '../errors.ts';

/**
 * The four words of a GID, the first one first; bytes are in network order within a word.
 * Errors: `ERR_VERBS` if `gid` is not the text of one.
 */
export function parseGid(call: string, gid: unknown): Uint32Array {
  if (typeof gid !== 'string' || gid.includes('%') || !isIPv6(gid)) {
    throw new RmaError('ERR_VERBS', `${call}: gid must be an IPv6 address, not ${show(gid)} (EINVAL)`);
  }
  // The last 32 bits may be written as an IPv4 address.
  const text = gid.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a, b, c, d] = bytes.map(Number);
    return `${(256 * a + b).toString(16)}:${(256 * c + d).toString(16)}`;
  });
  const [before, after] = text.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = after === undefined ? 0 : 8 - before.length - after.length;
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...(after ?? [])];
  const halves = groups.map((group) => Number.parseInt(group, 16));
  return Uint32Array.from({ length: 4 }, (_, i) => halves[2 * i] * 65_536 + halves[2 * i + 1]);
}

/** Four words as eight groups of four hexadecimal digits. */
export function gidText(words: ArrayLike<number>): string {
  const hex = Array.from(words, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  return hex.replace(/(....)(?=.)/g, '$1:');
}

/** Whether the words are an IPv4 address: `::ffff:a.b.c.d`. */
export function isMappedIpv4(words: ArrayLike<number>): boolean {
  return words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
}

/** Whether the words name a multicast group. */
export function isMulticast(words: ArrayLike<number>): boolean {
  return isMappedIpv4(words) ? words[3] >>> 28 === 0xe : words[0] >>> 24 === 0xff;
}

/** Refuses a GID that is not one of a multicast group, and a LID that is none. @returns the GID's words */
export function parseGroup(call: string, gid: unknown, lid: unknown): Uint32Array {
  const words = parseGid(call, gid);
  if (!isMulticast(words)) {
    throw new RmaError('ERR_VERBS', `${call}: ${show(gid)} is not the GID of a multicast group (EINVAL)`);
  }
  if (!Number.isInteger(lid) || (lid as number) < 0 || (lid as number) > 0xffff) {
    throw new RmaError('ERR_VERBS', `${call}: lid must be an integer from 0 to 65535, not ${show(lid)} (EINVAL)`);
  }
  return words;
}
