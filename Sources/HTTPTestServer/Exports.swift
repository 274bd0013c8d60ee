// A test that imports this module needs no second import to read the header fields of a request.
@_exported public import struct HTTPWire.HTTPHeader
