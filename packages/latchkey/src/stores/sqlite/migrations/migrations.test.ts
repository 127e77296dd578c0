import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { sqliteMigrations } from '../index.ts'

/** SHA-256 of what files have been given. A line is added with a new step, and none is ever changed. */
const applied: Readonly<Record<number, string>> = {
  1: '678f2747acfebf9fc7e71b7a81acbe784a47721cfb7c297cbb88ace37924fc4c',
  2: '808da41838c109ad6e461c0ac1ef189698a5e0053e5ec5567ddb48227b06328c',
  3: '0906f9e6a8de77b990eece257badeab1ba0fc90bd37ffefa4c5a6f7e400d6ae7',
  4: 'f0503451e02300d43a422b4bf49334a5757426ab7767efe1fab3f4fec87843f2',
  5: '9c0d868c02657def627c3af922f2020db5a855e74c795ea897e4b5293e806c23',
  6: '6c00cc501cf21d1f600d8e06401e630974b12e4c716f954467c7644bfa75a728',
  7: 'ab4d2bf86247c9c35f68907af80de408065981f30184bfdac5336fe1b30199ee',
  8: 'a70d2812b017e91fd3f2683e04f19f03efe0383c59a415bc9fb621d346c848fa',
  9: '19d3fefc2f2027028db54d24bf4a710db303fa3d15bf6adb857a9b877073452e',
  10: 'c2301da9d22d343c3ea4b2d066c9baaf16e6ba7bfff77e04ff656f15c9d5b07c',
  11: 'e268fe4cd717399d51afd35c2744b2b8160b2ac902276b0c0057deb594d445eb',
  12: '9d38b0bcbe8065ac8389bbd727667a1b7f71fda4a2d4a72bf2faaf91a1e1f4be',
  13: 'e2552d23618d70260be7ca294d4e951ba72576cc6151bdccbb0560c31749ce06',
}

it.each(sqliteMigrations)('gives step $version to every file in the same words', ({ version, sql }) => {
  const cure = `files have step ${version} and will not get it again: restore its text to the letter, and write what is new as step
    ${sqliteMigrations.length + 1}`
  expect(createHash('sha256').update(sql).digest('hex'), cure).toBe(applied[version])
})

it('has a digest for every step, and has dropped none', () => {
  expect(sqliteMigrations.map(({ version }) => String(version))).toEqual(Object.keys(applied))
})
