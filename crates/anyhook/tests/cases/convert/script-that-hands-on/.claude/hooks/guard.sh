#!/bin/sh
exec /opt/corp/guard
