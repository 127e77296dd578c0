import { describe, expect, it } from 'vitest'
import { readMessage } from '../inbox/message.ts'
import { type Envelope, messageOf } from './envelope.ts'

function envelope(headers: Record<string, string>, body: string, id?: string): Envelope {
  return {
    header: name => headers[name],
    headers,
    bytes: Buffer.from(body),
    source: 'ORDERS',
    id,
    type: undefined,
    contentType: headers['content-type'],
    position: 'ORDERS/7',
  }
}

const event = {
  specversion: '1.0',
  ...{ source: '/shop', id: 'e-1', type: 'order.placed', datacontenttype: 'application/json' },
}

describe('a message of a broker', () => {
  it('has the source and the id of a CloudEvent in its headers', () => {
    const headers = {
      'ce-source': '/shop',
      'ce-id': 'e-1',
      'ce-type': 'order.placed',
      'content-type': 'application/json',
    }
    expect(messageOf(envelope(headers, '{"order":7}', 'broker-1'), {})).toEqual({
      ...{ source: '/shop', id: 'e-1', type: 'order.placed', contentType: 'application/json', data: { order: 7 } },
      ...{ headers, position: 'ORDERS/7' },
    })
  })

  it('has those of a CloudEvent that is its body', () => {
    const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' }
    const read = (more: object) => messageOf(envelope(headers, JSON.stringify({ ...event, ...more }), 'broker-1'), {})
    expect(read({ data: { order: 7 } })).toMatchObject({
      ...{ source: '/shop', id: 'e-1', type: 'order.placed', contentType: 'application/json', data: { order: 7 } },
    })
    expect(read({ data_base64: 'AAE=' }).data).toEqual(Buffer.from([0, 1]))
    expect(read({}).data).toBe(null)
  })

  it('has the id of its broker otherwise, and where that is unique', () => {
    expect(messageOf(envelope({}, 'x', 'broker-1'), {})).toMatchObject({ source: 'ORDERS', id: 'broker-1' })
    // An id is unique within its source only.
    expect(messageOf(envelope({ 'ce-id': 'e-1' }, 'x', 'broker-1'), {})).toMatchObject({
      source: 'ORDERS',
      id: 'broker-1',
    })
  })

  it('has no id where its producer gave none: its position is one by choice only', () => {
    expect(messageOf(envelope({}, 'x'), {}).id).toBeUndefined()
    expect(messageOf(envelope({}, 'x'), { identity: 'position' })).toMatchObject({ source: 'ORDERS', id: 'ORDERS/7' })
  })

  it('is bytes where it is no UTF-8, and JSON also after a byte order mark', () => {
    const json = { 'content-type': 'application/json' }
    const read = (bytes: Uint8Array) => messageOf({ ...envelope(json, '', 'm'), bytes }, {}).data
    const invalid = Buffer.from([0x22, 0xff, 0x22])
    expect(read(invalid)).toBe(invalid)
    expect(read(Buffer.from('\uFEFF{"order":7}'))).toEqual({ order: 7 })
    // A view into a larger buffer.
    expect(read(Buffer.from('xx{"order":7}xx').subarray(2, 13))).toEqual({ order: 7 })
  })

  it('can be nested deeper than it could be written down again', () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`
    const json = { 'content-type': 'application/json' }
    const read = messageOf(envelope(json, deep, 'm'), {})
    expect(Array.isArray(read.data)).toBe(true)
    expect(Buffer.from(readMessage('test', read).payload).toString()).toBe(deep)
    // What is around the data of an event is not part of them, so it is read as no event.
    const events = { 'content-type': 'application/cloudevents+json' }
    const body = JSON.stringify({ ...event, data: 0 }).replace('"data":0', `"data":${deep}`)
    expect(messageOf(envelope(events, body), {}).id).toBeUndefined()
  })

  it('counts by the bytes that came, not by what numbers become', () => {
    const json = { 'content-type': 'application/json' }
    const payload = (body: string) => Buffer.from(readMessage('test', messageOf(envelope(json, body, 'm'), {})).payload)
    expect(payload('{"amount":9007199254740993}').toString()).toBe('{"amount":9007199254740993}')
  })

  it('is bytes unless a content type says JSON', () => {
    expect(messageOf(envelope({}, '{"order":7}', 'm'), {}).data).toEqual(Buffer.from('{"order":7}'))
    expect(messageOf(envelope({}, '{"order":7}', 'm'), { contentType: 'application/json' }).data).toEqual({ order: 7 })
    expect(messageOf(envelope({ 'content-type': 'application/json' }, '{"order":', 'm'), {}).data).toEqual(
      Buffer.from('{"order":'),
    )
    expect(messageOf(envelope({ 'content-type': 'application/cloudevents+json' }, '7', 'm'), {})).toMatchObject({
      ...{ source: 'ORDERS', id: 'm', data: 7 },
    })
  })
})
