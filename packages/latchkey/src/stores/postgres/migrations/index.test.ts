import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { postgresMigrations } from '../index.ts'

/** SHA-256 of what databases have been given. A line is added with a new step, and none is ever changed. */
const applied: Readonly<Record<number, string>> = {
  1: '5a2c7b1f25f184ecac2b298c909185201fcb7b62dcaf878132834d55afd461c6',
  2: 'b3b5a52f21edcac0495f17188e9a02b6455bd25af821c68692623463115853c0',
  3: 'd6b3238c7f134e36b40a769a401884af490c0f2f8e22a11d5a4394eda7c5fdff',
  4: 'b6406169f4de283f9b5623259ef9bcf67ef812ce8dd390d45b9e77d9fa1a1745',
  5: '8466928d468c1cfafc488dc2e5d6d2ce2d2568fe8f72c33b1eeff452b1d3e93a',
  6: '1249690bf6b2f45abf4916552ab0cc02ee737b22208012c011011230f3312829',
  7: '12bffd668852f4220bb0c8c0fa4cff18fcb7dd3842c685bdd5104e6ef13a39c0',
  8: '4172f0e3e4ba9f12c8bbd33de27b1829c906bf75a3399e1a20a732d8db6108a8',
  9: 'a4fdc359ffd2015d1c20e922e1bc9c08332b70d7fb27df18e7198e4aac4ab625',
  10: '001859b5eda3c0ed3a52fe91f3309aeb48bbab0b9f57ec3b7afd31a0c90746a8',
  11: '304ba0653e67562417c88ce208e90f8a2bd3f1f0e4038b06a867cb88125248fa',
  12: '3d332b9e8a05e9e0e42649aa05f675e265a4ece50bd73190cb7a8e83b4af45cc',
  13: '94c02c21df5307f9436443e4f6f9de94999de103efea2dfbdfe9466493a523a0',
  14: '7c7a91544d6cc65536b3af92e24a44891e81cc7a47a1f929fa0675a445b53a58',
  15: 'f2a591ac5eee53799be53a294d8478699ae246a840fd896ea349ed4797716bf0',
  16: 'fabfbd17c4f99d49fb91ddb17d53625981cf7bebd299baa9e1dd1084203d1ad3',
}

const steps = postgresMigrations('latchkey')

it.each(steps)('gives step $version to every database in the same words', ({ version, sql }) => {
  const cure = `databases have step ${version} and will not get it again: restore its text to the letter (write out what it takes from the
    dialect if that has to change), and write what is new as step ${steps.length + 1}, with functions that carry that number in their name`
  expect(createHash('sha256').update(sql).digest('hex'), cure).toBe(applied[version])
})

it('has a digest for every step, and has dropped none', () => {
  expect(steps.map(({ version }) => String(version))).toEqual(Object.keys(applied))
})

it('depends on nothing but the name of the schema', () => {
  const others = postgresMigrations('other')
  for (const [index, { sql }] of steps.entries()) {
    expect(others[index]?.sql.replaceAll('"other"', '"latchkey"')).toBe(sql)
  }
})

it('makes functions under names of their own, and drops those that only refused processes call', () => {
  const made = (version: number) =>
    [...(steps[version - 1]?.sql ?? '').matchAll(/create function "latchkey"\.(\w+)/g)].map(([, name]) => name)
  expect(made(8)).toEqual([...made(6), ...made(7)].map(name => `${name}_8`))
  expect(made(9)).toEqual([...made(6), ...made(7)].map(name => `${name}_9`))
  for (const name of made(12)) expect(name).toMatch(/_12$/)
  for (const step of [steps[7], steps[8], steps[11]]) expect(step?.sql).not.toMatch(/or replace|alter function/)
  const [, dropped = ''] = /^drop function (.*);$/m.exec(steps[8]?.sql ?? '') ?? []
  expect(dropped.split(', ')).toEqual([...made(6), ...made(7), ...made(8)].map(name => `"latchkey".${name}`))
  expect(steps[8]?.sql).toContain(`values (9, 'narrow-rows', 9);`)
})

it('lets every function of this release set its own path, and names what it calls by schema', () => {
  const functions = [steps[7], steps[8], steps[11]].flatMap(step => step?.sql.split('create function').slice(1) ?? [])
  for (const text of functions) expect(text).toContain('set search_path = pg_catalog, pg_temp')
  const called = functions
    .join('')
    .matchAll(
      /(?<![.\w])(cardinality|array_agg|unnest|round|date_part|now|clock_timestamp|get_byte|format|pg_\w+)\(([^()]*)/g,
    )
  // With several arguments `unnest` is the grammar's own.
  expect([...called].filter(([, name, given = '']) => name !== 'unnest' || !given.includes(','))).toEqual([])
})
