import { describe, expect, it } from 'vitest'
import { prefersAsync } from './prefer.ts'

describe('the preference for a 202', () => {
  it.each([
    [['respond-async']],
    [['Respond-ASYNC']],
    [['respond-async, wait=10']],
    [['wait=10,respond-async']],
    [['handling=lenient ;  x="a,b" , respond-async; y=1']],
    [['wait=10', ' respond-async ']],
    [['respond-async=""']],
    [['respond-async=']],
    [['', ',,respond-async,']],
  ])('is in %j', lines => {
    expect(prefersAsync(lines)).toBe(true)
  })

  it.each([
    [[]],
    [['']],
    [['respond-asynchronously']],
    [['x-respond-async']],
    [['respond-async=no']],
    [['respond_async']],
    [['wait="respond-async"']],
    [['x="a, respond-async, b"']],
    [[String.raw`x="a\", respond-async"`]],
    [['x; respond-async']],
  ])('is not in %j', lines => {
    expect(prefersAsync(lines)).toBe(false)
  })
})
