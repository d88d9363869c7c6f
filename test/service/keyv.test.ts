/** A map of a service as the store of a Keyv, in two members. */
import Keyv from 'keyv';
import { describe, expect, it } from 'vitest';
import { loadNative } from '../../src/native.ts';
import { KeyvStore } from '../../src/service/keyv-store.ts';
import { endMembersAfterEach, fresh, join } from './members.ts';

endMembersAfterEach();

describe.skipIf(loadNative() === undefined)('a store of Keyv', () => {
  async function stores(): Promise<[KeyvStore, KeyvStore]> {
    const name = fresh();
    const [one, two] = [await join(name), await join(name)];
    const options = { bytes: 1 << 20, codec: 'string' } as const;
    return [new KeyvStore(await one.map('cache', options)), new KeyvStore(await two.map('cache', options))];
  }

  it('is one for all members', async () => {
    const [a, b] = (await stores()).map((store) => new Keyv({ store, throwOnErrors: true }));
    expect(await a.set('ann', { seen: 1, at: [2, 3] })).toBe(true);
    expect(await b.get('ann')).toEqual({ seen: 1, at: [2, 3] });
    expect(await b.has('ann')).toBe(true);
    expect(await b.getMany(['ann', 'bob'])).toEqual([{ seen: 1, at: [2, 3] }, undefined]);
    expect(await b.delete('ann')).toBe(true);
    expect(await a.delete('ann')).toBe(false);
    expect(await a.get('ann')).toBeUndefined();
    await a.setMany([
      { key: 'x', value: 1 },
      { key: 'y', value: 2 },
    ]);
    expect(await b.hasMany(['x', 'y', 'z'])).toEqual([true, true, false]);
    expect(await b.deleteMany(['x', 'z'])).toBe(true);
    expect(await a.get('y')).toBe(2);
  });

  it('lets entries expire, at the time that Keyv says', async () => {
    const [store, other] = await stores();
    const cache = new Keyv({ store });
    await cache.set('short', 1, 30);
    await cache.set('long', 2, 60_000);
    while ((await cache.get('short')) !== undefined) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await new Keyv({ store: other }).get('long')).toBe(2);
    // The map has let it go, too.
    expect(await other.has('keyv:short')).toBe(false);
  });

  it('clears and walks a namespace, and no other', async () => {
    const [store, other] = await stores();
    const [users, pages] = [new Keyv({ store, namespace: 'users' }), new Keyv({ store: other, namespace: 'pages' })];
    await users.set('a', 1);
    await users.set('b', 2);
    await pages.set('a', 3);
    const found: unknown[] = [];
    for await (const [key, value] of users.iterator!('users')) found.push([key, value]);
    expect(found.sort()).toEqual([
      ['a', 1],
      ['b', 2],
    ]);
    await users.clear();
    expect([await users.get('a'), await pages.get('a')]).toEqual([undefined, 3]);
  });

  it('refuses what is no map, and says why a value does not fit', async () => {
    expect(() => new KeyvStore(new Map() as never)).toThrow(/must be a map of a service/);
    const bytes = await (await join(fresh())).map('cache', { bytes: 1 << 20, codec: 'bytes' });
    expect(() => new KeyvStore(bytes as never)).toThrow(/the map must have the codec "string"/);
    const [store] = await stores();
    await expect(store.set('k', 'x'.repeat(1 << 20))).rejects.toMatchObject({ code: 'ERR_SIZE' });
  });
});
