// One import is enough: what users hold of Foundation, and the values that live below this module.
@_exported public import Foundation
@_exported public import FoundationNetworking
@_exported public import class HTTPWire.AlternativeServices
@_exported public import struct HTTPWire.ClientIdentity
@_exported public import struct HTTPWire.ContentRange
@_exported public import struct HTTPWire.HTTPHeader
@_exported public import struct HTTPWire.HTTPHeaders
@_exported public import struct HTTPWire.HTTPMethod
@_exported public import enum HTTPWire.HostStorageError
@_exported public import enum HTTPWire.Proxy
@_exported public import struct HTTPWire.ProxyServer
@_exported public import struct HTTPWire.ReadableStream
@_exported public import enum HTTPWire.ReadableText
@_exported public import struct HTTPWire.Redaction
@_exported public import enum HTTPWire.ResumableUploadError
@_exported public import struct HTTPWire.ServerSentEvent
@_exported public import class HTTPWire.StrictTransportSecurity
@_exported public import struct HTTPWire.TransportOptions
@_exported public import struct HTTPWire.TransportSnapshot
@_exported public import struct HTTPWire.WebSocketCloseCode
